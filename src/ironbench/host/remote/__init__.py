"""Another machine, reached by ssh: its files, what is watched there during trials, what is done there around them."""
