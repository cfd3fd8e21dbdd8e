"""Remote machines reached by ssh: their files, observers during trials, and changes around trials."""
