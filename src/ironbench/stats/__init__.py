"""The mathematics behind verdicts: functions of numbers, on numpy and scipy, that know nothing of records.

scipy is imported inside functions: it takes longer to load than most verbs take to run.
"""
