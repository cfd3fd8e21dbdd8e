"""Emulated devices: modelled storage that real file systems and real databases run on."""
