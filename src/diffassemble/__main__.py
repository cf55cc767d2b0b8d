"""`python -m diffassemble` is the command `diffassemble`."""

import sys

from diffassemble.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
