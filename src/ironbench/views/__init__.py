"""What a verb prints and a page shows alike: names become records, and these become studies, comparisons and bills."""
