"""The statistics behind verdicts: functions of numbers, based on numpy, scipy and the core, independent of records.

scipy is imported inside functions, because it takes longer to load than most commands take to run.
"""
