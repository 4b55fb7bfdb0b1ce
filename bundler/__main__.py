"""`python -m bundler`."""

from bundler.cli import main

main()
