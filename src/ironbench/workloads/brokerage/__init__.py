"""A brokerage derived from TPC-E: its 33 tables, its transactions, and the rules that both keep."""
