"""`bundler cache`: what is kept, and how to keep less."""
