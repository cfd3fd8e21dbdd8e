"""Turns records into findings. All functions are pure: they read only their arguments and print nothing."""
