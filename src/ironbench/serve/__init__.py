"""ironbench in a browser: running and waiting experiments, and results. The pages consist of the report's own
sections."""
