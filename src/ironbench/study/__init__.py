"""Turns records into findings. Pure: reads only its arguments and prints nothing."""
