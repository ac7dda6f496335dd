// Files import this module in place of `Connect`. A file that imports both has two types of each name that both have.
@_exported public import Connect
