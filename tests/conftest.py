"""What holds for all tests: no example has to be quick, for a machine that is busy for a moment is no defect."""

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
