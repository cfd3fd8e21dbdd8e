"""This machine and others: processes and their children, control groups, mounts, fingerprint, doctor, ssh."""
