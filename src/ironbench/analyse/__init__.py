"""From records to what can be said of them. Pure: reads nothing but what it is handed, prints nothing."""
