"""Labs that use slices: all systems of a block run at the same time and are driven one after another in turns."""
