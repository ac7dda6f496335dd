#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

/// Reading C strings.
///
/// Invariant: what is read ends with a NUL and stays as long as what is returned. Strings of messages are such:
/// decoding and copying write the NUL, and C code has to.
@usableFromInline
enum CString {
  /// The bytes before the NUL.
  static func length(_ text: UnsafeRawPointer) -> Int {
    strlen(text.assumingMemoryBound(to: CChar.self))
  }

  /// The bytes before the NUL; none for a null pointer.
  @usableFromInline
  static func bytes(_ text: UnsafePointer<CChar>?) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: text, count: text.map { self.length($0) } ?? 0)
  }

  /// Empty for a null pointer.
  @inlinable
  static func string(_ text: UnsafePointer<CChar>?) -> String {
    text.map { String(cString: $0) } ?? ""
  }
}
