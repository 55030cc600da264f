"""`python -m app`."""

from app import main

main()
