"""The web server of `ironbench serve`: running and queued experiments, and results. Its pages consist of the same
sections as reports."""
