internal import CProtobufC

/// The data of a message type that decoding needs, contiguous in memory. Reading it needs no reference counting.
///
/// Invariant: as for ``FieldSchema``. `record` points into the memory of a ``MessageTables``, which users of a table
/// keep. The record is initialised before others see it, and changes only while its graph is built. So tables are safe
/// to share.
struct MessageTable: @unchecked Sendable, Equatable {
  struct Record {
    let descriptor: MessageDescriptorPointer
    let size: Int
    let emptyMessage: UnsafeRawPointer
    let fields: FieldList
    let countedCount: Int
    let containsRequired: Bool
    // Not `unowned(unsafe)`, for the reason given at ``FieldSchema/Record``.
    var schema: Unmanaged<MessageSchema>?
  }

  private let record: UnsafeMutablePointer<Record>

  init(_ record: UnsafeMutablePointer<Record>) {
    self.record = record
  }

  @inline(__always) var descriptor: MessageDescriptorPointer { self.record.pointee.descriptor }

  /// The size of the struct, in bytes.
  @inline(__always) var size: Int { self.record.pointee.size }

  /// An empty message, used as a template.
  @inline(__always) var emptyMessage: UnsafeRawPointer { self.record.pointee.emptyMessage }

  @inline(__always) var fields: FieldList { self.record.pointee.fields }

  /// The number of counted fields.
  @inline(__always) var countedCount: Int { self.record.pointee.countedCount }

  /// Whether a message of this type can contain a required field, at any depth.
  @inline(__always) var containsRequired: Bool { self.record.pointee.containsRequired }

  /// Owned by the graph that owns this table; nil if no graph does.
  @inline(__always) var schema: MessageSchema? {
    self.record.pointee.schema?.takeUnretainedValue()
  }

  /// Completes the table while its graph is built, before others see it.
  func link(to schema: MessageSchema) {
    self.record.pointee.schema = Unmanaged.passUnretained(schema)
  }

  /// Called once, by the tables that allocated the record's memory.
  func initialize(to record: Record) {
    self.record.initialize(to: record)
  }

  /// The full name of the type.
  var name: String { self.descriptor.fullName }

  /// The full name of a field, for errors.
  func name(of field: FieldSchema) -> String { self.descriptor.name(of: field.descriptor) }
}
