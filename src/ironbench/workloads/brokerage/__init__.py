"""A brokerage derived from TPC-E: its 33 tables, and the rules that they keep. No workload yet: nothing drives them."""
