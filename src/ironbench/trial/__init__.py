"""Runs a trial: loads the data, drives the load and observes every layer, on this machine and on workers."""
