"""No database, for workloads that measure the machine or its storage."""
