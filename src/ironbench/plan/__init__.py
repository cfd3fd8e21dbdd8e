"""From what the user wrote to a validated plan. Pure: nothing is started, nothing is written."""
