"""The smallest program that typer makes: what a command line costs before it does anything of its own."""

import typer

app = typer.Typer()


@app.command()
def hello() -> None:
    """Do nothing."""


app()
