"""The mathematics behind verdicts: functions of numbers, on numpy, scipy and the core, that know nothing of records.

scipy is imported inside functions: it takes longer to load than most verbs take to run.
"""
