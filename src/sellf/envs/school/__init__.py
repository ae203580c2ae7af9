"""School admission: ENEM microdata, the law of labels fitted on them, and a model of applicants."""
