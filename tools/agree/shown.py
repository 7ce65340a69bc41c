def compare(s, check):
    pass
