"""The host: what it is (`fingerprint`) and what about it spoils numbers (`doctor`)."""
