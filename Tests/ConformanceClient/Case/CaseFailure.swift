/// Why a call could not be made, or its outcome not be told. That is never how the call itself ended.
struct CaseFailure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}
