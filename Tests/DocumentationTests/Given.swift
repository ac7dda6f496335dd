// Readers have messages and stubs in their own module.
@_exported import Eliza

/// What the hidden lines of the documents start from, as in `let client: ProtocolClient = given()`.
///
/// Code with such a line is compiled, and never run.
func given<T>(_: T.Type = T.self) -> T {
  preconditionFailure("code of the documentation is compiled, not run")
}
