"""ironbench in a browser: what runs, what waits, what was measured. The pages are made of the report's own sections."""
