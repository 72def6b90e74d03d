"""A fake service that runs jobs for its callers: submitted now, finished later."""
