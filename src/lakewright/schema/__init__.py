"""Types of columns: one representation, what fits what, conversion to SQL, differences, canonical forms.

Everything here is pure: types of Spark, Delta, Parquet and databases are converted at the border.
"""
