"""Labs that use slices: all systems of a block run at the same time, and the load switches from one system to the
next."""
