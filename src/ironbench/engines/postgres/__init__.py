"""PostgreSQL: a server of our own from the programs that came with ironbench, or one that runs already."""
