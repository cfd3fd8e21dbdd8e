"""One trial: loads the data, drives the load, observes every layer, on this machine and on workers."""
