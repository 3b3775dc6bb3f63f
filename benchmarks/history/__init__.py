"""A history of the library's speed and accuracy, by asv: `bash benchmarks/history/run COMMIT...`.

Only public names that have long been there are used, so that old commits can be measured too.
"""
