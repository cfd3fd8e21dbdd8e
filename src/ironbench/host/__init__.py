"""Local and remote machines: processes and their children, control groups, mounts, fingerprint, doctor, ssh."""
