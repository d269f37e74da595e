"""`python -m tracemill`: the command line where no script is installed."""

from tracemill.cli.main import main

main()
