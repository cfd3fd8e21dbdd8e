"""The statistics behind verdicts: functions of numbers that are independent of records. The functions use numpy, scipy
and the core.

scipy is imported inside functions, because it takes longer to load than most commands take to run.
"""
