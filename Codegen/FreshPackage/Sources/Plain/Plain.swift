import Connect

/// Links Connect, and generates nothing.
public let code = Code.ok
