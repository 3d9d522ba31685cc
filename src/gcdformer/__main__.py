"""`python -m gcdformer` is `gcdformer`."""

from gcdformer.cli import main

raise SystemExit(main())
