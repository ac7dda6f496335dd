#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

/// Reading C strings.
///
/// Invariant: each C string ends with a NUL and lives as long as the returned value. Strings of messages meet this:
/// decoding and copying write the NUL, and C code has to write it.
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

  /// The text of a C string; empty for a null pointer.
  @inlinable
  static func string(_ text: UnsafePointer<CChar>?) -> String {
    text.map { String(cString: $0) } ?? ""
  }
}
