#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

/// Reading C strings.
@usableFromInline
enum CString {
  /// The bytes before the NUL.
  static func length(_ text: UnsafeRawPointer) -> Int {
    strlen(text.assumingMemoryBound(to: CChar.self))
  }

  /// Empty for a null pointer.
  @inlinable
  static func string(_ text: UnsafePointer<CChar>?) -> String {
    text.map { String(cString: $0) } ?? ""
  }
}
