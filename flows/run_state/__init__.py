"""Files a run writes about itself: records, summary, closing table, publish log."""
