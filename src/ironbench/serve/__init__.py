"""The web server of `ironbench serve`: running and queued experiments, and results. The pages consist of the same
sections as reports."""
