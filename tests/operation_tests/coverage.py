def missing():
    return []
