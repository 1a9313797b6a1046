"""How claims and what they are made of are drawn: rows and words in, plain values out.

Pages and live fragments show the same, so both take it from here.
"""
