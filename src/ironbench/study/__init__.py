"""Converts records to findings. Functions are pure: they read only their arguments and print nothing."""
