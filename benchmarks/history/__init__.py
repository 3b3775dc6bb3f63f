"""A history of the library's speed and accuracy, for asv: `asv run --machine NAME COMMITS`, then `asv show` or `asv publish`.

Only public names that have long been there are used, so that old commits can be measured too.
"""
