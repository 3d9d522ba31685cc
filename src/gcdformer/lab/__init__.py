"""The lab: a web page to see runs learn, to ask their models, and to see why; and its small JSON API."""
