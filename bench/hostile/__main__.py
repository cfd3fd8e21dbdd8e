"""`python -m bench.hostile WORD…`: runs behaviours whose name contains one of the words."""

import sys

from bench.hostile import main

main(sys.argv[1:])
